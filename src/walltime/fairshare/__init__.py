"""Fair shares of accounts and users: use, decay, factors, recovery, and their price in waits."""
