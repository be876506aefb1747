"""Spack recipe. Not built yet. The release fills in url and sha256."""

from spack.package import *


class Kintsugi(CMakePackage):
    """Matrix products at FP32, FP64 or exact accuracy on matrix units that only know FP16, BF16, TF32 or INT8."""

    url = "SOURCE_ARCHIVE_OF_THE_RELEASE"

    license("Apache-2.0")

    version("0.2.0", sha256="0" * 64)

    variant("cuda", default=False, description="Build the kernels for NVIDIA GPUs")
    variant("python", default=False, description="Build the Python package")

    depends_on("c", type="build")
    depends_on("cxx", type="build")
    depends_on("cmake@3.25:", type="build")
    depends_on("ninja", type="build")
    depends_on("fmt@9:", type="build")
    depends_on("nlohmann-json@3.11:", type="build")
    depends_on("cli11@2.1:", type="build")
    depends_on("openblas threads=pthreads", type="run")  # opened by name
    depends_on("cuda@12.8:", type="build", when="+cuda")

    extends("python@3.9:", when="+python")
    depends_on("py-pip", type="build", when="+python")
    depends_on("py-setuptools@61:", type="build", when="+python")
    depends_on("py-wheel", type="build", when="+python")
    depends_on("py-numpy@1.23:", type=("build", "run"), when="+python")

    generator("ninja")
    conflicts("platform=darwin", msg="Linux only")
    conflicts("platform=windows", msg="Linux only")

    def cmake_args(self):
        return [
            self.define("KINTSUGI_TESTS", False),
            self.define("KINTSUGI_COMPILER_PASS", "off"),
            self.define("KINTSUGI_DEVICE_CODE", "on" if self.spec.satisfies("+cuda") else "off"),
            self.define_from_variant("KINTSUGI_PYTHON_CORE", "python"),
        ]

    @run_after("install")
    def install_python(self):
        if self.spec.satisfies("+python"):
            with working_dir(self.stage.source_path):
                env["LIBKINTSUGI"] = join_path(self.build_directory, "libkintsugi.so")
                python("-m", "pip", "install", "--no-deps", "--no-build-isolation", f"--prefix={self.prefix}", "./python")

    def setup_run_environment(self, env):
        env.set("KINTSUGI_CPU_BLAS", join_path(self.spec["openblas"].prefix.lib, "libopenblas.so.0"))
