"""conan create packaging/conan - a Conan 2 package of the source that this file lies in."""
import pathlib

from conan import ConanFile
from conan.errors import ConanInvalidConfiguration
from conan.tools.cmake import CMake, CMakeToolchain, cmake_layout
from conan.tools.files import copy, rm, rmdir


class Goro(ConanFile):
    name = "goro"
    version = "0.1.0"
    license = "MIT"
    description = "Go's goroutines for C programs"
    package_type = "library"
    settings = "os", "arch", "compiler", "build_type"
    options = {"shared": [True, False]}
    default_options = {"shared": False}

    def configure(self):
        self.settings.rm_safe("compiler.cppstd")
        self.settings.rm_safe("compiler.libcxx")

    def validate(self):
        if self.settings.os != "Linux" or self.settings.arch not in ("x86_64", "armv8"):
            raise ConanInvalidConfiguration("goro runs on Linux, on x86_64 and armv8")

    def export_sources(self):
        root = pathlib.Path(self.recipe_folder).parent.parent
        for pattern in ("CMakeLists.txt", "LICENSE", "cmake/*", "include/*", "src/*", "docs/man/*", "tools/goro.supp"):
            copy(self, pattern, src=str(root), dst=self.export_sources_folder)

    def layout(self):
        cmake_layout(self)

    def generate(self):
        toolchain = CMakeToolchain(self)
        toolchain.cache_variables["GORO_TESTS"] = False
        toolchain.cache_variables["GORO_COMMAND"] = False
        toolchain.cache_variables["GORO_CALLS"] = False
        toolchain.generate()

    def build(self):
        cmake = CMake(self)
        cmake.configure()
        cmake.build()

    def package(self):
        CMake(self).install()
        copy(self, "LICENSE", src=self.source_folder, dst=str(pathlib.Path(self.package_folder, "licenses")))
        library = str(pathlib.Path(self.package_folder, "lib"))
        rm(self, "libgoro.a" if self.options.shared else "libgoro.so*", library)
        # Conan writes its own.
        rmdir(self, str(pathlib.Path(library, "cmake")))
        rmdir(self, str(pathlib.Path(library, "pkgconfig")))

    def package_info(self):
        self.cpp_info.libs = ["goro"]
        self.cpp_info.system_libs = ["pthread"]
        self.cpp_info.set_property("cmake_target_name", "goro::goro")
        self.cpp_info.set_property("pkg_config_name", "goro")
