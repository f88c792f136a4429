package main

import (
	"math"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/stretchr/testify/assert"
	"github.com/stretchr/testify/require"
)

func TestTheServerIsForThisMachineOnly(t *testing.T) {
	for _, address := range []string{"0.0.0.0:7233", "10.0.0.1:7233", ":7233", "temporal:7233", "127.0.0.1"} {
		_, err := parse([]string{"--address=" + address})
		assert.ErrorContains(t, err, "--address", address)
	}
	o, err := parse(nil)
	require.NoError(t, err)
	assert.Subset(t, o.arguments(), []string{"--ip=127.0.0.1", "--port=7233", "--namespace=fleetflow", "--headless", "--search-attribute=FleetRun=Keyword"})
	o, err = parse([]string{"--ui"})
	require.NoError(t, err)
	assert.NotContains(t, o.arguments(), "--headless")
}

func TestTheDatabaseOfAFormerServerIsDeleted(t *testing.T) {
	dir := t.TempDir()
	for _, name := range []string{"temporal.db", "temporal.db-wal", "temporal.db-shm", "other"} {
		require.NoError(t, os.WriteFile(filepath.Join(dir, name), nil, 0o600))
	}
	assert.ErrorContains(t, run([]string{"--data=" + dir, "--server=" + filepath.Join(dir, "none")}), "starting")
	entries, err := os.ReadDir(dir)
	require.NoError(t, err)
	require.Len(t, entries, 1)
	assert.Equal(t, "other", entries[0].Name())
	assert.ErrorContains(t, run([]string{"--data=" + filepath.Join(dir, "none")}), "reading the folder of the database")
}

func TestHealthAsksForTheNamespace(t *testing.T) {
	served := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if r.URL.Path != "/api/v1/namespaces/fleetflow" {
			http.NotFound(w, r)
		}
	}))
	defer served.Close()
	at := "--http-address=" + strings.TrimPrefix(served.URL, "http://")
	data := "--data=" + t.TempDir()
	require.NoError(t, run([]string{"health", at, data}))
	assert.ErrorContains(t, run([]string{"health", at, data, "--namespace=other"}), "404")
	full := run([]string{"health", at, data, "--least-free-bytes=" + strconv.FormatUint(math.MaxUint64, 10)})
	assert.ErrorContains(t, full, "the disk of the database is full")
	assert.ErrorContains(t, run([]string{"health", at, "--data=/nowhere"}), "looking at the disk of the database")
	served.Close()
	assert.ErrorContains(t, run([]string{"health", at, data}), "asking the server")
}
