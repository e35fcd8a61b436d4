"""What exists, as data and files: levels, actors, lights, blueprints, and the files beside a model."""
