# Makes PAGE, a C header with the page of attn-view -o html in three arrays:
# up to the title, from there to the data, and the rest.
#
#   cmake -DSOURCE=cmd -DPAGE=attn-view-page.h -P attn-view-page.cmake
#
# The style sheet and the scripts are put into the template, and their hashes
# into its Content-Security-Policy, so that a browser runs nothing else.

# hash(OUT TEXT): sha256-BASE64, as CSP level 3 writes a source
function(hash out text)
  set(digits ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/)
  string(SHA256 hex "${text}")
  string(REGEX MATCHALL "......" groups "${hex}00")
  foreach(group ${groups})
    foreach(shift 18 12 6 0)
      math(EXPR digit "(0x${group} >> ${shift}) & 63")
      string(SUBSTRING ${digits} ${digit} 1 digit)
      string(APPEND base64 ${digit})
    endforeach()
  endforeach()
  string(REGEX REPLACE "A$" "=" base64 ${base64})
  set(${out} "sha256-${base64}" PARENT_SCOPE)
endfunction()

# array(NAME TEXT): appended to `header`
function(array name text)
  string(HEX "${text}" hex)
  string(REGEX REPLACE "(..)" "0x\\1," bytes "${hex}")
  string(REPEAT "....." 12 line)
  string(REGEX REPLACE "(${line})" "\\1\n" bytes "${bytes}")
  set(header "${header}static const unsigned char ${name}[] = {\n${bytes}\n};\n"
    PARENT_SCOPE)
endfunction()

file(READ ${SOURCE}/attn-view.html page)
file(READ ${SOURCE}/attn-view.css css)
set(js)
foreach(part data heads grid map main)
  file(READ ${SOURCE}/attn-view-${part}.js text)
  string(APPEND js "${text}")
endforeach()
hash(css_hash "${css}")
hash(js_hash "${js}")
string(REPLACE "@CSS_HASH@" "${css_hash}" page "${page}")
string(REPLACE "@JS_HASH@" "${js_hash}" page "${page}")

string(FIND "${page}" "@TITLE@" title)
string(FIND "${page}" "@DATA@" data)
string(SUBSTRING "${page}" 0 ${title} head)
math(EXPR title "${title} + 7")
math(EXPR length "${data} - ${title}")
string(SUBSTRING "${page}" ${title} ${length} body)
math(EXPR data "${data} + 6")
string(SUBSTRING "${page}" ${data} -1 rest)
string(REPLACE "@CSS@" "${css}" body "${body}")
string(REPLACE "@JS@" "${js}" rest "${rest}")

set(header "/* Made of cmd/attn-view*.{html,css,js}. */\n")
array(page_head "${head}")
array(page_body "${body}")
array(page_rest "${rest}")
file(WRITE ${PAGE} "${header}")
