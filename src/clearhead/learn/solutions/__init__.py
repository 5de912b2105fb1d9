"""The solution of each exercise, as a student could have written it; `clearhead learn solution` prints it."""
