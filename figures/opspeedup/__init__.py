"""Operators of two recorded runs side by side: what mets-opspeedup does."""
