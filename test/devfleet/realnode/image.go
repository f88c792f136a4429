package realnode

import (
	"archive/tar"
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"runtime"
)

// nonroot is the user of the images that the Dockerfile makes.
const nonroot = "65532"

// Image is an image of programs that need nothing else, with what the base image of the Dockerfile has of theirs.
type Image struct {
	// Names are the names of the image, with their tags.
	Names []string
	// Files maps paths in the image to files of the machine, and Entrypoint is the program that it runs.
	Files      map[string]string
	Entrypoint []string
}

// Write writes an image as an archive that `ctr images import` reads.
func (i Image) Write(path string) (err error) {
	layer, err := os.CreateTemp(filepath.Dir(path), ".layer-")
	if err != nil {
		return fmt.Errorf("making the layer of an image: %w", err)
	}
	defer func() { _ = os.Remove(layer.Name()) }()
	defer layer.Close()
	sum := sha256.New()
	if err := i.writeLayer(io.MultiWriter(layer, sum)); err != nil {
		return fmt.Errorf("writing the layer of %s: %w", i.Names[0], err)
	}
	config, err := json.Marshal(map[string]any{
		"architecture": runtime.GOARCH, "os": "linux",
		"config": map[string]any{
			"User": nonroot + ":" + nonroot, "Entrypoint": i.Entrypoint, "WorkingDir": "/",
			"Env": []string{"PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"},
		},
		"rootfs": map[string]any{"type": "layers", "diff_ids": []string{"sha256:" + hex.EncodeToString(sum.Sum(nil))}},
	})
	if err != nil {
		return fmt.Errorf("encoding the configuration of %s: %w", i.Names[0], err)
	}
	manifest, err := json.Marshal([]any{map[string]any{"Config": "config.json", "RepoTags": i.Names, "Layers": []string{"layer.tar"}}})
	if err != nil {
		return fmt.Errorf("encoding the manifest of %s: %w", i.Names[0], err)
	}
	file, err := os.Create(path)
	if err != nil {
		return fmt.Errorf("making the archive of an image: %w", err)
	}
	defer file.Close()
	archive := tar.NewWriter(file)
	size, err := layer.Seek(0, io.SeekEnd)
	if err == nil {
		_, err = layer.Seek(0, io.SeekStart)
	}
	if err != nil {
		return fmt.Errorf("reading the layer of %s: %w", i.Names[0], err)
	}
	for _, part := range []struct {
		name    string
		size    int64
		content io.Reader
	}{
		{"config.json", int64(len(config)), bytes.NewReader(config)}, {"manifest.json", int64(len(manifest)), bytes.NewReader(manifest)},
		{"layer.tar", size, layer},
	} {
		if err := addFile(archive, part.name, 0o644, part.size, part.content); err != nil {
			return fmt.Errorf("writing the archive of %s: %w", i.Names[0], err)
		}
	}
	if err := archive.Close(); err != nil {
		return fmt.Errorf("writing the archive of %s: %w", i.Names[0], err)
	}
	return nil
}

// writeLayer writes the files of an image: the user's name, a folder for temporary files and the programs.
func (i Image) writeLayer(out io.Writer) error {
	layer := tar.NewWriter(out)
	for _, folder := range []struct {
		name string
		mode int64
	}{{"etc/", 0o755}, {"tmp/", 0o1777}} {
		if err := layer.WriteHeader(&tar.Header{Typeflag: tar.TypeDir, Name: folder.name, Mode: folder.mode}); err != nil {
			return err
		}
	}
	passwd := []byte("root:x:0:0:root:/root:/sbin/nologin\nnonroot:x:" + nonroot + ":" + nonroot + ":nonroot:/home/nonroot:/sbin/nologin\n")
	if err := addFile(layer, "etc/passwd", 0o644, int64(len(passwd)), bytes.NewReader(passwd)); err != nil {
		return err
	}
	for name, source := range i.Files {
		if err := addProgram(layer, name, source); err != nil {
			return err
		}
	}
	return layer.Close()
}

func addProgram(layer *tar.Writer, name, source string) error {
	file, err := os.Open(source)
	if err != nil {
		return err
	}
	defer file.Close()
	info, err := file.Stat()
	if err != nil {
		return err
	}
	return addFile(layer, name, 0o755, info.Size(), file)
}

func addFile(archive *tar.Writer, name string, mode, size int64, content io.Reader) error {
	if err := archive.WriteHeader(&tar.Header{Typeflag: tar.TypeReg, Name: name, Mode: mode, Size: size}); err != nil {
		return err
	}
	_, err := io.Copy(archive, content)
	return err
}
