package toolchain

import (
	"debug/elf"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"runtime"
)

// machines are what the headers of programs call the machines that Go has names for.
var machines = map[string]elf.Machine{
	"386": elf.EM_386, "amd64": elf.EM_X86_64, "arm": elf.EM_ARM, "arm64": elf.EM_AARCH64, "loong64": elf.EM_LOONGARCH,
	"ppc64le": elf.EM_PPC64, "riscv64": elf.EM_RISCV, "s390x": elf.EM_S390,
}

// objectTo returns why a file of the cache is no whole program for this machine; empty if it is one. A home that several machines
// share may hold programs of another architecture, and a full disk or a power cut leaves half of one.
func objectTo(file string) string {
	info, err := os.Stat(file)
	switch {
	case err != nil:
		return "cannot be read: " + err.Error()
	case !info.Mode().IsRegular():
		return "is no file"
	case info.Size() == 0:
		return "is empty"
	case info.Mode()&0o111 == 0:
		return "may not be executed"
	}
	if runtime.GOOS != "linux" {
		return "" // its programs have other headers
	}
	return objectToHeader(file, info.Size())
}

func objectToHeader(file string, size int64) string {
	opened, err := os.Open(file)
	if err != nil {
		return "cannot be read: " + err.Error()
	}
	defer opened.Close()
	program, err := elf.NewFile(opened)
	if err != nil {
		return "is no whole program: " + err.Error()
	}
	if machine, known := machines[runtime.GOARCH]; known && program.Machine != machine {
		return fmt.Sprintf("is for another machine, %s instead of %s (where machines of several kinds share a folder, set %s to another for each)",
			program.Machine, machine, CacheEnv)
	}
	if whole := endOf(program); size < whole {
		return fmt.Sprintf("is cut off after %d of %d bytes", size, whole)
	}
	return ""
}

// endOf returns how many bytes the headers of a program account for.
func endOf(program *elf.File) int64 {
	end := uint64(0)
	for _, part := range program.Progs {
		end = max(end, part.Off+part.Filesz)
	}
	for _, section := range program.Sections {
		if section.Type != elf.SHT_NOBITS {
			end = max(end, section.Offset+section.FileSize)
		}
	}
	return int64(end)
}

// objection returns why the program in the cache is not used; empty if it is used, or there is none.
func (p pinned) objection(programs Programs) string {
	if _, err := os.Lstat(p.cached); os.IsNotExist(err) {
		return ""
	}
	if objection := objectTo(p.cached); objection != "" {
		return objection
	}
	if _, err := os.Stat(p.cached + stampSuffix); err == nil && programs == Build {
		return "was downloaded, not built"
	}
	return ""
}

// removePartials removes what interrupted runs have left in the cache. The caller holds the cache's lock, so no process is
// writing.
func removePartials(cache string) error {
	left, err := fs.Glob(os.DirFS(cache), "*/*"+partialInfix+"*")
	if err != nil {
		return fmt.Errorf("looking for what interrupted runs have left: %w", err)
	}
	for _, file := range left {
		if err := os.Remove(filepath.Join(cache, file)); err != nil {
			return &storeError{err}
		}
	}
	return nil
}

// partialInfix is in the names of files that are being written, before the number of the process.
const partialInfix = ".partial-"

// partial returns where the program is written before it is renamed to its place, so that half of it never lies there.
func (p pinned) partial() string { return fmt.Sprintf("%s%s%d", p.cached, partialInfix, os.Getpid()) }

// storeError says that the cache of tools takes nothing.
type storeError struct{ cause error }

func (e *storeError) Error() string {
	return fmt.Sprintf("storing programs: %s (make room or get the right to write there, or name another folder in %s)", e.cause, CacheEnv)
}

func (e *storeError) Unwrap() error { return e.cause }
