# The page of `octet watch`, compiled into octet_watch: the files of octet/watch/page/, and dygraphs, which Debian's libjs-dygraphs installs.
set(page ${PROJECT_SOURCE_DIR}/octet/watch/page)
set(page_files "/|text/html|${page}/page.html")
file(GLOB styles CONFIGURE_DEPENDS ${page}/*.css)
file(GLOB scripts CONFIGURE_DEPENDS ${page}/*.js)
foreach(file IN LISTS styles)
  get_filename_component(name ${file} NAME)
  list(APPEND page_files "/${name}|text/css|${file}")
endforeach()
foreach(file IN LISTS scripts)
  get_filename_component(name ${file} NAME)
  list(APPEND page_files "/${name}|text/javascript|${file}")
endforeach()

find_file(OCTET_DYGRAPHS dygraph.min.js PATHS /usr/share/javascript/dygraphs NO_DEFAULT_PATH)
set(curves 0)
if(OCTET_DYGRAPHS)
  set(curves 1)
  get_filename_component(dygraphs ${OCTET_DYGRAPHS} DIRECTORY)
  list(APPEND page_files "/dygraph.min.js|text/javascript|${OCTET_DYGRAPHS}"
       "/dygraph.min.css|text/css|${dygraphs}/dygraph.min.css")
else()
  message(WARNING "octet watch will show no curves: dygraph.min.js is missing. Install the Debian package libjs-dygraphs, or let scripts/demo "
                  "install it, and configure again")
endif()

set(written ${PROJECT_BINARY_DIR}/page_files.cpp)
set(page_paths ${page}/page.html ${styles} ${scripts})
if(OCTET_DYGRAPHS)
  list(APPEND page_paths ${OCTET_DYGRAPHS} ${dygraphs}/dygraph.min.css)
endif()
add_custom_command(OUTPUT ${written} COMMAND ${CMAKE_COMMAND} -D "FILES=${page_files}" -D CURVES=${curves} -D OUTPUT=${written}
                                             -P ${PROJECT_SOURCE_DIR}/cmake/embed.cmake
                   DEPENDS ${page_paths} ${PROJECT_SOURCE_DIR}/cmake/embed.cmake VERBATIM)
target_sources(octet_watch PRIVATE ${written})
