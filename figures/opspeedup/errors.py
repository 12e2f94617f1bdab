"""What is wrong with what was asked for."""


class ProfileError(Exception):
    """A profile that cannot be read or compared; the text says what to do."""
