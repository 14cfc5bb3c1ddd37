"""A site's week: the jobs that ended in a period, their waits and estimates, and the trend over earlier periods."""
