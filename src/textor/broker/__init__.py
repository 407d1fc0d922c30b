"""The broker: applications with their own windows, which register what an intelligence may do there.

After the article on the AI enabled operating system (Robert Henry, 2024), whose JSON is read as it is.
"""
