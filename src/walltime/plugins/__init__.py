"""Code that users add: Python files and installed packages, the files on which they depend, and the parts that they provide."""
