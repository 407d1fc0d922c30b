from textor.apps.calendar.program import app

if __name__ == "__main__":
    app.main()
