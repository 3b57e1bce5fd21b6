"""Commands that list, calibrate and train detectors."""
