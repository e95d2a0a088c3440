"""One file per pass, each a plain function (Kernel, Target) -> Kernel; `pipeline.py` puts them in order."""
