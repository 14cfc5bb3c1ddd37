"""Fair shares of accounts and users: use, decay, factors, recovery, and their effect on waits."""
