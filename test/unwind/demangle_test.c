/*
 * demangle_test.c - C++ names, shortened.
 */
#include "unwind/symbol.h"

#include "test.h"

static void check(const char *mangled, const char *want)
{
	char out[256];

	if (!demangle(mangled, strlen(mangled), out, sizeof out))
		FAIL("%s is not understood", mangled);
	CHECK_STR(out, want);
}

TEST(names_lose_their_parameters_and_template_arguments)
{
	static const char *const names[][2] = {
		{ "_Z6workerPv", "worker" },
		{ "_ZL6workerPv", "worker" },
		{ "_ZN6server6worker3runEv", "server::worker::run" },
		{ "_ZNK6server6worker3runERKNS_7requestE", "server::worker::run" },
		{ "_ZNO1a1bEv", "a::b" },
		{ "_Z3maxIiET_S0_S0_", "max<...>" },
		{ "_ZN3fooIiSt6vectorIiSaIiEEE3barEv", "foo<...>::bar" },
		{ "_ZNSt6vectorIiSaIiEE9push_backERKi", "std::vector<...>::push_back" },
		{ "_ZSt4sortIPiEvT_S1_", "std::sort<...>" },
		{ "_ZStlsISt11char_traitsIcEERSt13basic_ostreamIcT_ES5_PKc", "std::operator<<<...>" },
		{ "_ZNSs6appendEPKc", "std::string::append" },
		{ "_ZNSsC1EPKcRKSaIcE", "std::string::basic_string" },
		{ "_ZNSaIcED2Ev", "std::allocator<...>::~allocator" },
		{ "_ZN3FooC2Ei", "Foo::Foo" },
		{ "_ZN2ns3FooIcED0Ev", "ns::Foo<...>::~Foo" },
		{ "_ZN12_GLOBAL__N_14waitEi", "(anonymous namespace)::wait" },
		{ "_ZN12_GLOBAL__N_16ObjectC1Ev", "(anonymous namespace)::Object::Object" },
		{ "_ZN3FoopLERKS_", "Foo::operator+=" },
		{ "_ZN3FooclEv", "Foo::operator()" },
		{ "_ZN3FoocvbEv", "Foo::operator type" },
		{ "_ZN3FoonwEm", "Foo::operator new" },
		{ "_Znwm", "operator new" },
		{ "_ZN3FooixEm", "Foo::operator[]" },
		{ "_Zli2_kPKc", "operator\"\" _k" },
		{ "_ZZ4mainENKUlvE_clEv", "main::{lambda#1}::operator()" },
		{ "_ZZ4mainENKUliPcE0_clEiS_", "main::{lambda#2}::operator()" },
		{ "_ZZN2ns1fIiEEvT_ENKUlvE_clEv", "ns::f<...>::{lambda#1}::operator()" },
		{ "_ZZ1fvEN1A1gEv", "f::A::g" },
		{ "_ZZ1fvENUt_1gEv", "f::{unnamed#1}::g" },
		{ "_ZThn16_N1B1fEv", "B::f" },
		{ "_ZTv0_n24_N1B1fEv", "B::f" },
		{ "_ZTW3var", "TLS wrapper function for var" },
		{ "_ZNSt7__cxx1112basic_stringIcSt11char_traitsIcESaIcEE9_M_createERmm",
		  "std::__cxx11::basic_string<...>::_M_create" },
		{ "_ZN3foo3barB5cxx11Ev", "foo::bar" },
		{ "_ZN1AILi42ELb1EE1gEv", "A<...>::g" },
		{ "_ZN1AIJiiPcEE1gEv", "A<...>::g" },
		{ "_ZNSt8functionIFviEEC1IZ4mainEUliE_vEEOT_", "std::function<...>::function<...>" },
		{ "_ZNSt17_Function_handlerIFvvEZ4mainEUlvE_E9_M_invokeERKSt9_Any_data",
		  "std::_Function_handler<...>::_M_invoke" },
		{ "_ZSt13__invoke_implIvRZ4mainEUlvE_JEET_St14__invoke_otherOT0_DpOT1_",
		  "std::__invoke_impl<...>" },
		{ "_ZN1AIA3_iM1BKFvvEDv4_fDnE1gEv", "A<...>::g" },
		{ "_ZN4core3fmt5write17h0123456789abcdefE", "core::fmt::write::h0123456789abcdef" },
	};

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		check(names[i][0], names[i][1]);
}

TEST(other_names_are_refused)
{
	static const char *const names[] = {
		"", "main", "_Z", "_Z5", "_Z6worke", "_ZN", "_ZN3foo", "_ZNE", "_ZTV3Foo", "_ZTI3Foo",
		"_ZGVN1A1bE", "_Z99999999999999999999999a", "_ZS_", "_ZN1AIXadL_Z1fvEEE1gEv", "_ZZ4main", "_ZUl",
		"_ZN3FooC", "_ZN3fooILi", "_Z0a",
	};
	char out[256];

	for (size_t i = 0; i < sizeof names / sizeof *names; i++)
		if (demangle(names[i], strlen(names[i]), out, sizeof out))
			FAIL("%s is understood as %s", names[i], out);
}

TEST(names_are_cut_to_the_buffer)
{
	char out[8];

	CHECK(demangle("_ZN6server6worker3runEv", 23, out, sizeof out));
	CHECK_STR(out, "server:");
}

/* Whatever the name, demangle ends and reads nothing beyond it: ASan would see that. */
TEST(garbage_is_survived)
{
	static const char letters[] = "_ZNSTILEKVRPFAMUltDvCDB0123_abist";
	uint64_t seed = 1;
	char out[64];

	for (int i = 0; i < 200000; i++) {
		size_t n = 2 + (size_t)i % 40;
		char *name = malloc(n);

		memcpy(name, "_Z", 2);
		for (size_t k = 2; k < n; k++) {
			seed = seed * 6364136223846793005u + 1442695040888963407u;
			name[k] = letters[(seed >> 33) % (sizeof letters - 1)];
		}
		demangle(name, n, out, sizeof out);
		free(name);
	}
}

TEST(depth_is_bounded)
{
	static char name[100000];
	char out[64];

	for (int c = 0; c < 4; c++) {
		memset(name, "PFIN"[c], sizeof name);
		memcpy(name, "_ZN1AI", 6);
		demangle(name, sizeof name, out, sizeof out);
	}
	memset(name, 'Z', sizeof name);
	memcpy(name, "_Z", 2);
	CHECK(!demangle(name, sizeof name, out, sizeof out));
}
