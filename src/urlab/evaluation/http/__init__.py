"""The evaluation server: endpoints, what they do, the bodies they read and the process they run in."""
