// Command registry is a registry of images that asks for a name and a password. It has one image, from an archive, and prints how that
// is pulled by its digest once it listens. Real nodes in test/pods pull from it.
package main

import (
	"crypto/subtle"
	"flag"
	"fmt"
	"io"
	"log"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"time"

	"github.com/google/go-containerregistry/pkg/name"
	"github.com/google/go-containerregistry/pkg/registry"
	v1 "github.com/google/go-containerregistry/pkg/v1"
	"github.com/google/go-containerregistry/pkg/v1/mutate"
	"github.com/google/go-containerregistry/pkg/v1/remote"
	"github.com/google/go-containerregistry/pkg/v1/tarball"
)

const (
	// userEnv and passwordEnv name the variables with what a client has to show.
	userEnv     = "REGISTRY_USER"
	passwordEnv = "REGISTRY_PASSWORD"
	// headerTimeout bounds how long a client may take to ask.
	headerTimeout = 5 * time.Second
)

func main() {
	address := flag.String("address", "127.0.0.1:0", "where it listens")
	archive := flag.String("archive", "", "the archive of the image, as docker save writes it")
	repository := flag.String("repository", "private/workload", "where the image is")
	architecture := flag.String("architecture", "", "the architecture that the image says it is for, that of its archive if empty")
	flag.Parse()
	if err := run(*address, *archive, *repository, *architecture); err != nil {
		fmt.Fprintln(os.Stderr, "registry:", err)
		os.Exit(1)
	}
}

func run(address, archive, repository, architecture string) error {
	images := registry.New(registry.Logger(log.New(io.Discard, "", 0)))
	digest, err := push(images, archive, repository, architecture)
	if err != nil {
		return err
	}
	listener, err := net.Listen("tcp", address)
	if err != nil {
		return fmt.Errorf("listening: %w", err)
	}
	fmt.Printf("%s/%s@%s\n", listener.Addr(), repository, digest)
	server := &http.Server{Handler: known(images, os.Getenv(userEnv), os.Getenv(passwordEnv)), ReadHeaderTimeout: headerTimeout}
	return server.Serve(listener)
}

// push gives a registry the image of an archive, and returns its digest. No node reaches the registry meanwhile.
func push(images http.Handler, archive, repository, architecture string) (digest string, err error) {
	server := httptest.NewServer(images)
	defer server.Close()
	image, err := tarball.ImageFromPath(archive, nil)
	if err != nil {
		return "", fmt.Errorf("reading the archive of an image: %w", err)
	}
	if image, err = ownConfiguration(image, repository, architecture); err != nil {
		return "", err
	}
	reference, err := name.ParseReference(strings.TrimPrefix(server.URL, "http://")+"/"+repository, name.Insecure)
	if err != nil {
		return "", fmt.Errorf("naming the image: %w", err)
	}
	if err := remote.Write(reference, image); err != nil {
		return "", fmt.Errorf("pushing the image: %w", err)
	}
	hash, err := image.Digest()
	if err != nil {
		return "", fmt.Errorf("asking for the digest of the image: %w", err)
	}
	return hash.String(), nil
}

// ownConfiguration returns an image that is another one for a kubelet: of one that a node has already it remembers from then on that it was
// pulled with a secret, and starts it for no Pod without.
func ownConfiguration(image v1.Image, repository, architecture string) (v1.Image, error) {
	file, err := image.ConfigFile()
	if err != nil {
		return nil, fmt.Errorf("reading the configuration of the image: %w", err)
	}
	changed := file.DeepCopy()
	changed.Config.Labels = map[string]string{"repository": repository}
	if architecture != "" {
		changed.Architecture = architecture
	}
	if image, err = mutate.ConfigFile(image, changed); err != nil {
		return nil, fmt.Errorf("changing the configuration of the image: %w", err)
	}
	return image, nil
}

// known lets only those in who show the name and the password.
func known(next http.Handler, user, password string) http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		shownUser, shownPassword, _ := r.BasicAuth()
		if subtle.ConstantTimeCompare([]byte(shownUser+":"+shownPassword), []byte(user+":"+password)) != 1 {
			w.Header().Set("WWW-Authenticate", `Basic realm="images of the tests"`)
			http.Error(w, `{"errors": [{"code": "UNAUTHORIZED", "message": "who are you?"}]}`, http.StatusUnauthorized)
			return
		}
		next.ServeHTTP(w, r)
	})
}
