# An overlay port that builds the source it lies in:
#	vcpkg install goro --overlay-ports=packaging/vcpkg
get_filename_component(SOURCE_PATH "${CMAKE_CURRENT_LIST_DIR}/../.." ABSOLUTE)

vcpkg_cmake_configure(SOURCE_PATH "${SOURCE_PATH}" OPTIONS -DGORO_TESTS=OFF -DGORO_COMMAND=OFF -DGORO_CALLS=OFF)
vcpkg_cmake_install()
vcpkg_cmake_config_fixup(CONFIG_PATH lib/cmake/goro)
vcpkg_fixup_pkgconfig()

# Both kinds of library are installed; vcpkg wants the one that the triplet names.
if(VCPKG_LIBRARY_LINKAGE STREQUAL "static")
	file(GLOB other "${CURRENT_PACKAGES_DIR}/lib/libgoro.so*" "${CURRENT_PACKAGES_DIR}/debug/lib/libgoro.so*")
else()
	file(GLOB other "${CURRENT_PACKAGES_DIR}/lib/libgoro.a" "${CURRENT_PACKAGES_DIR}/debug/lib/libgoro.a")
endif()
file(REMOVE ${other})
file(REMOVE_RECURSE "${CURRENT_PACKAGES_DIR}/debug/include" "${CURRENT_PACKAGES_DIR}/debug/share")
vcpkg_install_copyright(FILE_LIST "${SOURCE_PATH}/LICENSE")
