"""Reading from stdin, and writing to the terminal: lines, tables, colours, charts and progress bars."""
