"""Standard input and output: lines, tables, colours, charts and progress bars."""
