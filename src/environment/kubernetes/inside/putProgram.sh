#!/bin/sh
# Unpacks a gzipped archive of SIZE bytes from stdin into FOLDER. The input does not end, so its bytes are counted.
umask 022
head -c "$1" | gzip -dc | tar -C "$2" -xf -
