from textor.apps.drawing.program import app

if __name__ == "__main__":
    app.main()
