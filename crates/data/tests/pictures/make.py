"""Makes the images of this folder and what PIL decodes them to.

    python3 make.py        (needs Pillow and numpy; made with Pillow 13.0.0)

expected.gz holds, for each file: a line "name width height tolerance", then the pixels, three
bytes each. operations.gz holds, for each operation of RandAugment: a line "operation strength width
height", then what PIL makes of colour.png. resized.gz holds, for each case of resizing: a line "filter left top right bottom
width height", then the pixels of source.png brought to that size.
"""

import gzip
import io
import struct
import zlib
from pathlib import Path

import numpy as np
from PIL import Image, ImageEnhance, ImageOps

HERE = Path(__file__).parent
WIDTH, HEIGHT = 25, 18


def scene(width, height):
    """Smooth colours, an edge and a bright corner: no symmetry."""
    y, x = np.mgrid[0:height, 0:width].astype(float)
    red = 255 * x / max(width - 1, 1)
    green = 127 + 90 * np.sin(y / 3.0 + x / 9.0)
    blue = 60 + 70 * ((x + 2 * y) % 23 < 11)
    pixels = np.stack([0.8 * red + 20, green, blue], -1)
    pixels[: height // 4, : width // 4] = (230, 220, 90)
    return Image.fromarray(np.clip(pixels, 0, 255).astype(np.uint8))


IMAGE = scene(WIDTH, HEIGHT)
expected = []


def keep(name, content, pixels=None, tolerance=0):
    (HERE / name).write_bytes(content)
    if pixels is None:
        image = Image.open(io.BytesIO(content))
        pixels = ImageOps.exif_transpose(image).convert("RGB")
    expected.append((name, pixels, tolerance))


def encoded(image, kind, **options):
    out = io.BytesIO()
    image.save(out, kind, **options)
    return out.getvalue()


def jpegs():
    def jpeg(name, image=IMAGE, patch=lambda content: content, **options):
        options = {"quality": 90, **options}
        keep(f"{name}.jpg", patch(encoded(image, "JPEG", **options)), tolerance=3)

    jpeg("baseline-420", subsampling="4:2:0")
    jpeg("baseline-422", subsampling="4:2:2")
    jpeg("baseline-444", subsampling="4:4:4")
    jpeg("coarse", quality=20)
    jpeg("fine", quality=100)
    jpeg("restarts", restart_marker_rows=1)
    jpeg("grey", IMAGE.convert("L"))
    jpeg("progressive", progressive=True)
    jpeg("progressive-444", progressive=True, subsampling="4:4:4")
    jpeg("progressive-grey", IMAGE.convert("L"), progressive=True)
    jpeg("untransformed", keep_rgb=True)

    def plain_names(content):
        content = content.replace(b"R\x11\0G\x11\0B\x11\0", b"\1\x11\0\2\x11\0\3\x11\0")
        return content.replace(b"\3R\0G\0B\0", b"\3\1\0\2\0\3\0")

    # Here Adobe's marker alone says that the channels are red, green and blue.
    jpeg("untransformed-plain", patch=plain_names, keep_rgb=True)
    jpeg("narrow", scene(5, 40))
    jpeg("tall", scene(12, 70))
    jpeg("one-pixel", scene(1, 1))
    jpeg("cmyk", IMAGE.convert("CMYK"), quality=95)

    def say_ycck(content):
        at = content.index(b"Adobe") + 11
        assert content[at] == 0
        return content[:at] + b"\x02" + content[at + 1 :]

    # Four channels that are Y, Cb, Cr and K, inverted by PIL as Adobe has it.
    luma = IMAGE.convert("YCbCr").split()
    black = Image.fromarray(255 - np.asarray(IMAGE.convert("L")) // 3)
    ycck = Image.merge("CMYK", [ImageOps.invert(channel) for channel in (*luma, ImageOps.invert(black))])
    jpeg("ycck", ycck, say_ycck, quality=95)
    for orientation in range(1, 9):
        exif = Image.Exif()
        exif[0x112] = orientation
        jpeg(f"orientation-{orientation}", exif=exif)


def png_chunk(kind, content):
    return struct.pack(">I", len(content)) + kind + content + struct.pack(">I", zlib.crc32(kind + content))


def png_16(pixels):
    """A PNG of 16 bits, which PIL does not write in colour."""
    height, width, channels = pixels.shape
    colour = {1: 0, 2: 4, 3: 2, 4: 6}[channels]
    header = struct.pack(">IIBBBBB", width, height, 16, colour, 0, 0, 0)
    rows = b"".join(b"\0" + row.astype(">u2").tobytes() for row in pixels)
    chunks = [(b"IHDR", header), (b"IDAT", zlib.compress(rows, 9)), (b"IEND", b"")]
    return b"\x89PNG\r\n\x1a\n" + b"".join(png_chunk(*chunk) for chunk in chunks)


def pngs():
    alpha = Image.fromarray(np.asarray(scene(WIDTH, HEIGHT).convert("L"))[:, ::-1].copy())
    transparent = IMAGE.copy()
    transparent.putalpha(alpha)
    palette = IMAGE.quantize(16)
    keep("colour.png", encoded(IMAGE, "PNG"))
    keep("alpha.png", encoded(transparent, "PNG"))
    keep("grey.png", encoded(IMAGE.convert("L"), "PNG"))
    keep("grey-alpha.png", encoded(transparent.convert("LA"), "PNG"))
    keep("palette.png", encoded(palette, "PNG"))
    keep("palette-transparent.png", encoded(palette, "PNG", transparency=3))
    keep("bits.png", encoded(IMAGE.convert("1"), "PNG"))
    exif = Image.Exif()
    exif[0x112] = 6
    keep("turned.png", encoded(IMAGE, "PNG", exif=exif))
    noise = np.random.default_rng(0).integers(0, 65536, (5, 7, 4), np.uint16)
    for name, channels in [("grey", 1), ("colour", 3), ("alpha", 4)]:
        values = noise[:, :, :channels]
        # PIL clips 16 bits of grey at 255; we keep the upper byte, as it does in colour.
        upper = (values >> 8).astype(np.uint8)[:, :, :3]
        upper = Image.fromarray(np.broadcast_to(upper, (5, 7, 3)).copy())
        content = png_16(values)
        if channels != 1:
            assert Image.open(io.BytesIO(content)).convert("RGB").tobytes() == upper.tobytes()
        keep(f"{name}-16.png", content, upper)
    return transparent, palette


def others(transparent, palette):
    mirrored = ImageOps.mirror(IMAGE)
    keep("lossless.webp", encoded(IMAGE, "WEBP", lossless=True))
    keep("lossless-alpha.webp", encoded(transparent, "WEBP", lossless=True, exact=True))
    keep("lossy.webp", encoded(IMAGE, "WEBP", quality=80), tolerance=3)
    animated = {"save_all": True, "append_images": [mirrored]}
    keep("animated.webp", encoded(IMAGE, "WEBP", lossless=True, **animated))
    keep("palette.gif", encoded(palette, "GIF"))
    keep("transparent.gif", encoded(palette, "GIF", transparency=3))
    keep("animated.gif", encoded(palette, "GIF", save_all=True, append_images=[mirrored.quantize(16)]))
    keep("colour.bmp", encoded(IMAGE, "BMP"))
    keep("grey.bmp", encoded(IMAGE.convert("L"), "BMP"))
    keep("palette.bmp", encoded(palette, "BMP"))
    keep("bits.bmp", encoded(IMAGE.convert("1"), "BMP"))
    keep("colour.tiff", encoded(IMAGE, "TIFF"))
    keep("lzw.tiff", encoded(IMAGE, "TIFF", compression="tiff_lzw"))
    keep("grey.tiff", encoded(IMAGE.convert("L"), "TIFF"))
    keep("colour.ppm", encoded(IMAGE, "PPM"))


def resized():
    source = scene(40, 30)
    (HERE / "source.png").write_bytes(encoded(source, "PNG", optimize=True))
    cases = [
        ((0, 0, 40, 30), (12, 12)),
        ((0, 0, 40, 30), (50, 14)),
        ((7.5, 3.25, 33.75, 27.5), (10, 12)),
        ((7, 5, 23, 21), (16, 16)),
        ((20, 10, 32, 19), (18, 13)),
        ((2.8125, 0, 37.1875, 30), (7, 5)),
    ]
    out = b""
    for name, filter in [("bilinear", Image.BILINEAR), ("bicubic", Image.BICUBIC)]:
        for box, size in cases:
            pixels = source.resize(size, filter, box=box)
            numbers = " ".join(str(number) for number in (*box, *size))
            out += f"{name} {numbers}\n".encode() + pixels.tobytes()
    (HERE / "resized.gz").write_bytes(gzip.compress(out, 9, mtime=0))


def operations():
    grey = (128, 128, 128)

    def affine(*matrix):
        return IMAGE.transform(IMAGE.size, Image.AFFINE, matrix, Image.NEAREST, fillcolor=grey)

    def cases(strength):
        factor = 1 + 0.9 * strength
        moved_x = int(150 / 331 * WIDTH * strength)
        moved_y = int(150 / 331 * HEIGHT * strength)
        yield "Color", ImageEnhance.Color(IMAGE).enhance(factor)
        yield "Contrast", ImageEnhance.Contrast(IMAGE).enhance(factor)
        yield "Brightness", ImageEnhance.Brightness(IMAGE).enhance(factor)
        yield "Sharpness", ImageEnhance.Sharpness(IMAGE).enhance(factor)
        yield "Rotate", IMAGE.rotate(30 * strength, Image.NEAREST, fillcolor=grey)
        yield "ShearX", affine(1, 0.3 * strength, 0, 0, 1, 0)
        yield "ShearY", affine(1, 0, 0, 0.3 * strength, 1, 0)
        yield "TranslateX", affine(1, 0, -moved_x, 0, 1, 0)
        yield "TranslateY", affine(1, 0, 0, 0, 1, -moved_y)
        if strength > 0:
            yield "AutoContrast", ImageOps.autocontrast(IMAGE)
            yield "Equalize", ImageOps.equalize(IMAGE)
            yield "Solarize", ImageOps.solarize(IMAGE, 256 * (1 - strength))
            yield "Posterize", ImageOps.posterize(IMAGE, 8 - round(4 * strength))

    out = b""
    for strength in (0.7, -0.7):
        for name, image in cases(strength):
            out += f"{name} {strength} {image.width} {image.height}\n".encode() + image.tobytes()
    (HERE / "operations.gz").write_bytes(gzip.compress(out, 9, mtime=0))


jpegs()
operations()
others(*pngs())
resized()
out = b"".join(
    f"{name} {image.width} {image.height} {tolerance}\n".encode() + image.tobytes()
    for name, image, tolerance in expected
)
(HERE / "expected.gz").write_bytes(gzip.compress(out, 9, mtime=0))
