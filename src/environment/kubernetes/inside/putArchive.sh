#!/bin/sh
# Unpacks an archive of SIZE bytes from stdin at the root. The input does not end, so they are counted.
head -c "$1" | tar -C / -xf -
