"""How each exercise is checked and used; `load_exercise` joins the two files of an exercise.

The Python file has REFERENCE, the project's own code called as the student's is; `cases()`, the inputs for which both
are compared; and `swap(piece)`, the attributes of the project that `learn use` replaces by the student's piece.

The TOML file has the texts: hints, from a first thought to nearly the code, and the mistakes that are recognised. Each
mistake is an edit of the solution: `old`, a part of its text that occurs once, becomes `new`. Settings, such as
`gradient = false`, are described in `exercise.py`.
"""
