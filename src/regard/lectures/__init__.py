"""Teaching: exercises with checks that name the mistake."""
