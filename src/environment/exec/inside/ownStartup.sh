#!/bin/sh
# /root is the home of root. `BASH_ENV: /root/.bashrc`, which configurations for images of SWE-bench have, means the file of that name in the home of
# whoever runs: a bash that may not read the file it is told says so before every output, and no first line is ever the marker.
case ${BASH_ENV-} in
  /root/*)
    if [ ! -r "$BASH_ENV" ]; then
      if [ -r "${HOME-}${BASH_ENV#/root}" ]; then export BASH_ENV="${HOME-}${BASH_ENV#/root}"
      elif [ ! -x /root ] || [ -e "$BASH_ENV" ]; then unset BASH_ENV; fi
    fi
    ;;
esac
