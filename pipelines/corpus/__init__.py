"""Find the files of a corpus, cut them into splits and read their documents."""
