"""A calendar program: events with repetition, day and week, and iCalendar files."""
