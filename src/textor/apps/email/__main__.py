from textor.apps.email.program import app

if __name__ == "__main__":
    app.main()
