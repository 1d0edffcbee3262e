"""Large objects in files of their own: where they go, how they are named, how they are found."""
