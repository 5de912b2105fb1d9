"""How each exercise is checked: cases, the project's own code to compare with, mistakes, hints."""
