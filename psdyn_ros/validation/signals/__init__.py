"""Signals of a recording: topics, resampling, filters, quality."""
