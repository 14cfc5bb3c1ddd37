"""Weekly reports on a site: waits and hours of the jobs in a period, and the trend over earlier periods."""
