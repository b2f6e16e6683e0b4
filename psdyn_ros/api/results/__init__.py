"""What calls return: fields by name that print in a few lines and turn into dictionaries and tables."""
