"""Second opinions: the papers' equations as loops over float64 numbers.

The modules here import nothing but NumPy and the standard library, are written from the papers
and never from the code under test, and prefer being obvious to being fast.
"""
