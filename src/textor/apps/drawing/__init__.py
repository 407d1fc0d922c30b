"""A drawing program: lines, rectangles, circles and text, kept as shapes and saved as SVG or PNG."""
