"""Private database servers: started on free ports under a temporary folder, stopped afterwards."""
