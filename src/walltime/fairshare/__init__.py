"""Fair shares of accounts and users: use, decay, factors, recovery, and their cost in waits."""
