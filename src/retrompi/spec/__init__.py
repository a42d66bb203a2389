"""What is asked of a simulation, typed and checked: platforms, channels, models' parameters, what runs beside."""
