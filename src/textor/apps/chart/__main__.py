from textor.apps.chart.program import app

if __name__ == "__main__":
    app.main()
