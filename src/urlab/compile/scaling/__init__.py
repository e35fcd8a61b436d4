"""Scaling a model: lengths scale, what is stated in other units stays."""

from urlab.compile.scaling.spec import scale_spec

__all__ = ["scale_spec"]
