package web;

import wattwire.Kit;

import java.io.ByteArrayInputStream;
import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.file.Files;
import java.nio.file.Path;
import java.security.GeneralSecurityException;
import java.security.KeyFactory;
import java.security.KeyStore;
import java.security.PrivateKey;
import java.security.PublicKey;
import java.security.cert.CertificateFactory;
import java.security.cert.X509Certificate;
import java.security.spec.PKCS8EncodedKeySpec;
import java.util.Arrays;
import java.util.Base64;

import javax.net.ssl.KeyManagerFactory;
import javax.net.ssl.SSLContext;
import javax.net.ssl.TrustManagerFactory;

/** The TLS configuration of a run (C-35), read from its PEM files. */
public final class Tls {
    private static final int SEQUENCE = 0x30;
    private static final int OCTETS = 0x04;
    private static final byte[] VERSION_0 = {2, 1, 0};

    private Tls() {}

    public static boolean isEnabled(Kit kit) {
        return !kit.spec.tlsAuthority.isEmpty();
    }

    /** Returns the certificates of a file, in the file's order. */
    public static X509Certificate[] certificates(String path)
            throws IOException, GeneralSecurityException {
        byte[] text = Files.readAllBytes(Path.of(path));
        return CertificateFactory.getInstance("X.509")
                .generateCertificates(new ByteArrayInputStream(text))
                .toArray(new X509Certificate[0]);
    }

    /**
     * Returns the private key of `publicKey`. The JDK reads only PKCS 8, so this method wraps a key
     * in its algorithm's own format ("EC PRIVATE KEY"), with the algorithm of the public key.
     */
    public static PrivateKey key(String path, PublicKey publicKey)
            throws IOException, GeneralSecurityException {
        String[] parts = Files.readString(Path.of(path)).split("-----");
        byte[] key = Base64.getMimeDecoder().decode(parts[2]);
        if (!parts[1].equals("BEGIN PRIVATE KEY"))
            key = der(SEQUENCE, VERSION_0, algorithm(publicKey.getEncoded()), der(OCTETS, key));
        return KeyFactory.getInstance(publicKey.getAlgorithm())
                .generatePrivate(new PKCS8EncodedKeySpec(key));
    }

    /** Returns the first element of a public key, which is a DER sequence. */
    private static byte[] algorithm(byte[] publicKey) {
        ByteBuffer data = ByteBuffer.wrap(publicKey);
        length(data);
        int from = data.position();
        int length = length(data);
        return Arrays.copyOfRange(publicKey, from, data.position() + length);
    }

    /** Reads a tag and a length, and returns the length. */
    private static int length(ByteBuffer data) {
        int length = data.getShort() & 0xFF;
        if (length < 0x80) return length;
        int more = length - 0x80; // number of bytes of the length
        for (length = 0; more > 0; more--) length = length << 8 | data.get() & 0xFF;
        return length;
    }

    /** Returns a DER element of at most 65,535 bytes. */
    private static byte[] der(int tag, byte[]... parts) {
        int length = 0;
        for (byte[] part : parts) length += part.length;
        ByteBuffer data = ByteBuffer.allocate(length + 4).put((byte) tag);
        if (length < 0x80) data.put((byte) length);
        else if (length < 0x100) data.put((byte) 0x81).put((byte) length);
        else data.put((byte) 0x82).putShort((short) length);
        for (byte[] part : parts) data.put(part);
        return Arrays.copyOf(data.array(), data.position());
    }

    /** Returns a context that trusts only the run's authority, or null without TLS. */
    public static SSLContext context(Kit kit) throws IOException, GeneralSecurityException {
        if (!isEnabled(kit)) return null;
        KeyStore trusted = emptyStore();
        for (X509Certificate authority : certificates(kit.spec.tlsAuthority))
            trusted.setCertificateEntry(authority.getSerialNumber().toString(), authority);
        var trust = TrustManagerFactory.getInstance(TrustManagerFactory.getDefaultAlgorithm());
        trust.init(trusted);
        SSLContext context = SSLContext.getInstance("TLS");
        context.init(ownKeys(kit).getKeyManagers(), trust.getTrustManagers(), null);
        return context;
    }

    private static KeyManagerFactory ownKeys(Kit kit) throws IOException, GeneralSecurityException {
        KeyStore store = emptyStore();
        if (!kit.spec.tlsCertificate.isEmpty()) {
            X509Certificate[] chain = certificates(kit.spec.tlsCertificate);
            PrivateKey key = key(kit.spec.tlsKey, chain[0].getPublicKey());
            store.setKeyEntry("node", key, new char[0], chain);
        }
        var keys = KeyManagerFactory.getInstance(KeyManagerFactory.getDefaultAlgorithm());
        keys.init(store, new char[0]);
        return keys;
    }

    private static KeyStore emptyStore() throws IOException, GeneralSecurityException {
        KeyStore store = KeyStore.getInstance(KeyStore.getDefaultType());
        store.load(null, null);
        return store;
    }

    /** Returns the offered versions, for libraries that do not report the negotiated version. */
    public static String offered(SSLContext context) {
        if (context == null) return "none";
        return String.join(" or ", context.getDefaultSSLParameters().getProtocols());
    }
}
