package temporalclient

import (
	"context"
	"crypto/tls"
	"crypto/x509"
	"errors"
	"fmt"
	"net"
	"os"
	"strings"

	"go.temporal.io/sdk/client"
	"google.golang.org/grpc"
	"google.golang.org/grpc/credentials"
)

// Security says how the connection to Temporal is protected; the zero value is
// plain text. Files are read again for every new connection, and the API key for
// every call, so that what is renewed needs no restart.
type Security struct {
	// TLS encrypts the connection. Every other field implies it.
	TLS bool
	// CAFile has the certificates that vouch for Temporal's; those of the system do
	// if it is empty.
	CAFile string
	// CertFile and KeyFile are the client's certificate, for mutual TLS.
	CertFile, KeyFile string
	// ServerName is what Temporal's certificate is made out to, if that is not the
	// host of the address.
	ServerName string
	// APIKeyFile has the API key that goes with each call; APIKey is the key itself
	// and counts if there is no file.
	APIKeyFile, APIKey string
}

// Encrypted reports whether there is any protection.
func (s Security) Encrypted() bool { return s.TLS || s != (Security{}) }

// ReadAuthorities reads the certificates of a CA file.
func ReadAuthorities(file string) (*x509.CertPool, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return nil, fmt.Errorf("reading the CA of Temporal: %w", err)
	}
	pool := x509.NewCertPool()
	if !pool.AppendCertsFromPEM(content) {
		return nil, fmt.Errorf("%s has no certificate in PEM", file)
	}
	return pool, nil
}

// ReadCertificate reads a client certificate and its key.
func ReadCertificate(certFile, keyFile string) (tls.Certificate, error) {
	pair, err := tls.LoadX509KeyPair(certFile, keyFile)
	if err != nil {
		return tls.Certificate{}, fmt.Errorf("reading the certificate for Temporal: %w", err)
	}
	return pair, nil
}

// ReadAPIKey reads an API key; space around it does not count.
func ReadAPIKey(file string) (string, error) {
	content, err := os.ReadFile(file)
	if err != nil {
		return "", fmt.Errorf("reading the API key for Temporal: %w", err)
	}
	key := strings.TrimSpace(string(content))
	if key == "" {
		return "", fmt.Errorf("%s is empty; it must have the API key for Temporal", file)
	}
	return key, nil
}

// readTLSConfig reads the files as they are now.
func (s Security) readTLSConfig() (*tls.Config, error) {
	config := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	var err error
	if s.CAFile != "" {
		if config.RootCAs, err = ReadAuthorities(s.CAFile); err != nil {
			return nil, err
		}
	}
	if s.CertFile != "" {
		pair, err := ReadCertificate(s.CertFile, s.KeyFile)
		if err != nil {
			return nil, err
		}
		config.Certificates = []tls.Certificate{pair}
	}
	return config, nil
}

// addCredentials adds the security to the options of a client.
func (s Security) addCredentials(o *client.Options) {
	if !s.Encrypted() {
		return
	}
	base := &tls.Config{MinVersion: tls.VersionTLS12, ServerName: s.ServerName}
	o.ConnectionOptions.TLS = base
	// The last word on credentials is that of the dial options.
	o.ConnectionOptions.DialOptions = append(o.ConnectionOptions.DialOptions,
		grpc.WithTransportCredentials(&rotating{TransportCredentials: credentials.NewTLS(base), security: s}))
	switch {
	case s.APIKeyFile != "":
		o.Credentials = client.NewAPIKeyDynamicCredentials(func(context.Context) (string, error) { return ReadAPIKey(s.APIKeyFile) })
	case s.APIKey != "":
		o.Credentials = client.NewAPIKeyStaticCredentials(s.APIKey)
	}
}

// rotating are transport credentials that read their files at every handshake.
type rotating struct {
	credentials.TransportCredentials
	security Security
}

// ClientHandshake secures a new connection by the files as they are now.
func (r *rotating) ClientHandshake(ctx context.Context, authority string, conn net.Conn) (net.Conn, credentials.AuthInfo, error) {
	config, err := r.security.readTLSConfig()
	if err != nil {
		return nil, nil, err
	}
	secured, info, err := credentials.NewTLS(config).ClientHandshake(ctx, authority, conn)
	if err != nil {
		return nil, nil, fmt.Errorf("securing the connection to Temporal: %w", err)
	}
	return secured, info, nil
}

// ServerHandshake is for servers, which these credentials are not for.
func (r *rotating) ServerHandshake(net.Conn) (net.Conn, credentials.AuthInfo, error) {
	return nil, nil, errors.New("these credentials are for clients")
}

// Clone copies the credentials.
func (r *rotating) Clone() credentials.TransportCredentials {
	return &rotating{TransportCredentials: r.TransportCredentials.Clone(), security: r.security}
}
