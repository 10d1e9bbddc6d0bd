"""One suite of promises over every job."""
