//go:build bench

package bench

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"

	"github.com/stretchr/testify/require"
)

const (
	// profilesEnv names the folder for CPU profiles of what is measured.
	profilesEnv = "FLEETFLOW_BENCH_PROFILES"
	// profileSeconds is how long each profile is: of the last one, which is cut off, nothing is kept.
	profileSeconds = 5
)

// profile keeps CPU profiles of the hub agent and of the hub's API server until what it returns is called. Without a folder for them
// it keeps none, as profiling costs some per cent.
func (f *fleet) profile(t *testing.T, title string) (stop func()) {
	t.Helper()
	folder := os.Getenv(profilesEnv)
	if folder == "" {
		return func() {}
	}
	require.NoError(t, os.MkdirAll(folder, 0o755))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for process, take := range map[string]func(context.Context) ([]byte, error){
		"hub-agent": f.profileOfAgent,
		"apiserver": func(ctx context.Context) ([]byte, error) {
			return f.raw.Get().AbsPath("/debug/pprof/profile").Param("seconds", fmt.Sprint(profileSeconds)).DoRaw(ctx)
		},
	} {
		name := strings.NewReplacer(" ", "-", ",", "", "(", "", ")", "").Replace(title) + "." + process
		all.Go(func() { keepProfiles(ctx, t, filepath.Join(folder, name), take) })
	}
	return func() { cancel(); all.Wait() }
}

// keepProfiles takes one profile after the other until the context ends. A process that does not answer is asked again: it may have
// been killed.
func keepProfiles(ctx context.Context, t *testing.T, path string, take func(context.Context) ([]byte, error)) {
	for n := 0; ctx.Err() == nil; {
		content, err := take(ctx)
		if err != nil {
			pause(lookEvery)
			continue
		}
		n++
		if err := os.WriteFile(fmt.Sprintf("%s.%03d.pb.gz", path, n), content, 0o600); err != nil {
			t.Logf("keeping a profile: %v", err)
			return
		}
	}
}

func (f *fleet) profileOfAgent(ctx context.Context) ([]byte, error) {
	url := fmt.Sprintf("http://%s/debug/pprof/profile?seconds=%d", f.Fleet.Address("hub-agent/pprof"), profileSeconds)
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return nil, fmt.Errorf("making a request for a profile: %w", err)
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return nil, fmt.Errorf("asking the hub agent for a profile: %w", err)
	}
	defer response.Body.Close()
	content, err := io.ReadAll(response.Body)
	if err == nil && response.StatusCode != http.StatusOK {
		err = fmt.Errorf("asking the hub agent for a profile: %s", response.Status)
	}
	return content, err
}
