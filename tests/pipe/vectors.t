# Every case of golden/tokenizer and of other engines, on the commands as they
# are built: see tests/vectors.py.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

timeout "$LIMIT" python3 "$PF_SOURCE/tests/vectors.py"
