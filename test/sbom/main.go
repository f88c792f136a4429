// Command sbom writes a software bill of materials of Go programs: what was really linked into each of them, as its own
// build information says, in CycloneDX's JSON. It needs no network and says the same of the same binary every time.
package main

import (
	"crypto/sha256"
	"debug/buildinfo"
	"encoding/hex"
	"encoding/json"
	"flag"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"runtime/debug"
)

// document is a bill of materials of CycloneDX 1.5.
type document struct {
	Format       string       `json:"bomFormat"`
	Spec         string       `json:"specVersion"`
	Version      int          `json:"version"`
	Metadata     metadata     `json:"metadata"`
	Components   []component  `json:"components"`
	Dependencies []dependency `json:"dependencies"`
}

type metadata struct {
	Component component `json:"component"`
}

type component struct {
	Type     string          `json:"type"`
	Ref      string          `json:"bom-ref"`
	Name     string          `json:"name"`
	Version  string          `json:"version,omitempty"`
	PURL     string          `json:"purl,omitempty"`
	Hashes   []hash          `json:"hashes,omitempty"`
	Licenses []licenseChoice `json:"licenses,omitempty"`
}

type licenseChoice struct {
	License license `json:"license"`
}

type license struct {
	ID string `json:"id"`
}

type hash struct {
	Algorithm string `json:"alg"`
	Content   string `json:"content"`
}

type dependency struct {
	Ref       string   `json:"ref"`
	DependsOn []string `json:"dependsOn"`
}

func main() {
	version := flag.String("version", "", "version of the programs; what their build information says if empty")
	flag.Usage = func() {
		fmt.Fprintln(flag.CommandLine.Output(), "usage: sbom [-version v] <program>...; writes <program>.cdx.json beside each")
	}
	flag.Parse()
	if flag.NArg() == 0 {
		flag.Usage()
		os.Exit(2)
	}
	for _, program := range flag.Args() {
		if err := write(program, *version); err != nil {
			fmt.Fprintln(os.Stderr, "sbom:", err)
			os.Exit(1)
		}
	}
}

// write writes the bill of a program of a version beside it.
func write(program, version string) error {
	info, err := buildinfo.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading what %s was built of: %w", program, err)
	}
	if version != "" {
		info.Main.Version = version // a build without version control data does not know it
	}
	content, err := os.ReadFile(program)
	if err != nil {
		return fmt.Errorf("reading the program: %w", err)
	}
	sum := sha256.Sum256(content)
	d, err := billOf(filepath.Base(program), hex.EncodeToString(sum[:]), info, licensesOf)
	if err != nil {
		return fmt.Errorf("making the bill of %s: %w", program, err)
	}
	bill, err := json.MarshalIndent(d, "", "  ")
	if err != nil {
		return fmt.Errorf("encoding the bill of %s: %w", program, err)
	}
	if err := os.WriteFile(program+".cdx.json", append(bill, '\n'), 0o644); err != nil {
		return fmt.Errorf("writing the bill of %s: %w", program, err)
	}
	return nil
}

// billOf makes the bill of a program of a name and a SHA-256. A module that a folder of this repository replaces is a part of the program itself.
func billOf(name, sum string, info *debug.BuildInfo, licensesOf func(module, version string) ([]string, error)) (document, error) {
	main := component{Type: "application", Ref: name, Name: name, Version: info.Main.Version, Hashes: []hash{{"SHA-256", sum}}}
	d := document{Format: "CycloneDX", Spec: "1.5", Version: 1, Metadata: metadata{Component: main}}
	parts := dependency{Ref: name}
	add := func(module, version string) error {
		licenses, err := licensesOf(module, version)
		if err != nil {
			return err
		}
		purl := "pkg:golang/" + module + "@" + url.PathEscape(version)
		library := component{Type: "library", Ref: purl, Name: module, Version: version, PURL: purl}
		for _, id := range licenses {
			library.Licenses = append(library.Licenses, licenseChoice{license{id}})
		}
		d.Components = append(d.Components, library)
		parts.DependsOn = append(parts.DependsOn, purl)
		return nil
	}
	if err := add(standard, info.GoVersion); err != nil {
		return d, err
	}
	for _, module := range info.Deps {
		if module.Replace != nil {
			module = module.Replace
		}
		if module.Version == "" {
			continue
		}
		if err := add(module.Path, module.Version); err != nil {
			return d, err
		}
	}
	d.Dependencies = []dependency{parts}
	return d, nil
}
