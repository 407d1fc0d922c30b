"""A chart program: columns, lines, bars and pies, from numbers as people and models write them."""
