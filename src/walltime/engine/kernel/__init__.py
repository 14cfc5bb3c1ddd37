"""What is compiled. A loop for each kind of machine: number/ (start with number/loop.py), pools/, nodes/; what they share is here."""
